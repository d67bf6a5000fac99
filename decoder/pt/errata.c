/* The table of CPUs. */
#include "decoder/pt/errata.h"

#include <string.h>

enum {
    BDM64 = 1,
    BDM70 = 2,
    SKD007 = 4,
    SKD010 = 8,
    SKD022 = 16,
    SKL014 = 32,
    SKL168 = 64,
    SKZ84 = 128,
    APL11 = 256,
    APL12 = 512,

    SINCE_SKYLAKE = BDM70 | SKD022 | SKL014,
};

struct row {
    uint16_t family;

    uint8_t models[16]; /* up to the first 0 */

    unsigned errata;
};

static const struct row table[] = {
    /* Broadwell */
    {6, {0x3d, 0x47, 0x4f, 0x56}, BDM64 | BDM70},
    /* Skylake, Kaby Lake, Comet Lake */
    {6, {0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6}, SINCE_SKYLAKE | SKD007 | SKD010 | SKL168},
    /* Servers: Skylake, Ice Lake, Sapphire, Emerald and Granite Rapids; Diamond Rapids */
    {6, {0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae}, SINCE_SKYLAKE | SKZ84},
    {0x13, {0x01}, SINCE_SKYLAKE | SKZ84},
    /* Cannon, Ice, Tiger and Rocket Lake */
    {6, {0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7, 0xa8}, SINCE_SKYLAKE},
    /* Alder, Raptor, Meteor, Arrow, Lunar and Panther Lake */
    {6, {0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xaa, 0xac, 0xb5, 0xc5, 0xc6, 0xbd, 0xcc}, SINCE_SKYLAKE | APL11},
    /* Goldmont */
    {6, {0x5c, 0x5f}, APL11 | APL12},
    /* Goldmont Plus, Tremont, Gracemont and later ones without big cores */
    {6, {0x7a, 0x86, 0x96, 0x9c, 0xb6, 0xaf, 0xdd}, APL11},
};

static unsigned find(const struct dec_pt_config *config)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (table[i].family != config->family)
            continue;
        for (const uint8_t *model = table[i].models; *model; model++)
            if (*model == config->model)
                return table[i].errata;
    }
    return 0;
}

void pt_errata_of(const struct dec_pt_config *config, struct pt_errata *errata)
{
    unsigned has = find(config);
    memset(errata, 0, sizeof(*errata));
    errata->bdm64 = (has & BDM64) != 0;
    errata->bdm70 = (has & BDM70) != 0;
    errata->skd007 = (has & SKD007) != 0;
    errata->skd010 = (has & SKD010) != 0;
    errata->skd022 = (has & SKD022) != 0;
    errata->skl014 = (has & SKL014) != 0;
    errata->skl168 = (has & SKL168) != 0;
    errata->skz84 = (has & SKZ84) != 0;
    errata->apl11 = (has & APL11) != 0;
    errata->apl12 = (has & APL12) != 0;
}
