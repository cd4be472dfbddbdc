/****************************************************************************
** Meta object code from reading C++ file 'panel.h'
**
** WARNING! All changes made in this file will be lost!
*****************************************************************************/
#include "panel.h"

static const unsigned int panel_meta_data[] = {
    8, 0, 0, 0, 2, 14, 0, 0, 0, 0, 0, 0, 0, 1,
    1, 0, 24, 2, 0x06, 3, 0, 25, 2, 0x0a,
};

const void* panel_static_meta_object() {
    return panel_meta_data;
}
