"""Options of gcc, clang, ld and cl that a path follows, besides those of one letter: facts of compilers, declared once.

The scrubber of definitions, the gate that judges it and the reader of commands use them, and share nothing else.
"""

_WITH_NEXT = """
    -isystem -iquote -idirafter -include -imacros -isysroot -iframework -framework -isystem-after -cxx-isystem
    -stdlib++-isystem -include-pch -ivfsoverlay -iprefix -iwithprefix -iwithprefixbefore -iwithsysroot -imultilib
    -MF -MT -MQ -MJ -aux-info -dumpdir -dumpbase -resource-dir -working-directory -gcc-toolchain -wrapper --sysroot
    --config
"""
_JOINED = """
    -MD -MMD -specs -rpath -rpath-link -dynamic-linker -script -LIBPATH -vfsoverlay -Fo -Fd -Fe -Fp -FI -Fi -Fx -Fm
    -Fa -FR -Fr -FU -AI -Yc -Yu -Yl -external:I -ifcOutput -ifcSearchDir
"""
OPTIONS_WITH_NEXT = tuple(_WITH_NEXT.split())
"""Those whose path may be the next argument too, as they are written."""
PATH_OPTIONS = frozenset(option.lstrip("-") for option in (*OPTIONS_WITH_NEXT, *_JOINED.split()))
"""Names of all that a path may follow without a separator, whatever number of dashes begins them."""
