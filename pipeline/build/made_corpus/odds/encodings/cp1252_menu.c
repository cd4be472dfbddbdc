/* Menu du café : les libellés et leurs prix en euros (€). */
#include <stdio.h>
#include <string.h>

struct plat {
    const char *libelle; /* nom sans accents, pour les tris */
    const char *nom;
    int centimes;
};

static const struct plat carte[] = {
    {"creme brulee", "Crème brûlée", 650},
    {"pate en croute", "Pâté en croûte", 980},
    {"oeufs", "Œufs mimosa", 720},
    {"gateau", "Gâteau à l’orange", 590},
};

/* Affiche la carte, le prix aligné à droite. */
void afficher_carte(FILE *sortie) {
    for (size_t i = 0; i < sizeof carte / sizeof carte[0]; ++i) {
        fprintf(sortie, "%-20s %3d,%02d €\n", carte[i].nom, carte[i].centimes / 100, carte[i].centimes % 100);
    }
}
