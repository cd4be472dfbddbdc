static const short yy_accept[100] =
    {
    178, 285, 177, 176, 185, 90, 18, 80, 118, 298,
    146, 133, 298, 124, 40, 270, 244, 129, 68, 131,
    12, 268, 260, 140, 293, 69, 50, 127, 71, 252,
    132, 77, 91, 281, 30, 11, 13, 169, 257, 54,
    248, 117, 78, 74, 30, 143, 282, 49, 204, 265,
    255, 49, 134, 46, 273, 245, 96, 123, 136, 185,
    191, 156, 173, 99, 281, 214, 288, 21, 40, 91,
    98, 220, 195, 246, 199, 196, 156, 37, 93, 170,
    83, 10, 174, 135, 220, 241, 270, 42, 274, 208,
    132, 256, 8, 48, 157, 98, 123, 105, 298, 173,
    } ;
static const short yy_ec[100] =
    {
    283, 74, 90, 260, 202, 188, 101, 149, 224, 155,
    42, 54, 131, 97, 108, 236, 259, 14, 268, 278,
    267, 65, 228, 50, 128, 107, 196, 240, 185, 152,
    230, 158, 11, 177, 300, 142, 62, 78, 120, 12,
    42, 36, 175, 94, 211, 61, 89, 291, 132, 244,
    147, 187, 266, 41, 173, 285, 191, 274, 3, 145,
    214, 36, 240, 58, 266, 52, 195, 3, 239, 3,
    203, 231, 167, 292, 28, 201, 161, 187, 12, 5,
    118, 125, 210, 119, 171, 236, 55, 296, 6, 263,
    171, 27, 27, 44, 4, 115, 76, 53, 292, 7,
    } ;
static const short yy_meta[100] =
    {
    135, 226, 195, 273, 293, 284, 36, 126, 272, 59,
    267, 30, 31, 102, 97, 18, 292, 69, 62, 297,
    114, 278, 189, 135, 91, 227, 37, 141, 274, 199,
    1, 207, 202, 32, 57, 114, 238, 291, 139, 221,
    76, 185, 255, 221, 116, 238, 96, 139, 213, 159,
    73, 199, 219, 202, 238, 288, 107, 111, 133, 243,
    121, 49, 224, 166, 184, 256, 283, 151, 149, 90,
    264, 98, 33, 154, 196, 127, 208, 91, 173, 265,
    95, 23, 176, 145, 273, 11, 135, 248, 126, 199,
    87, 184, 231, 7, 298, 0, 42, 114, 243, 173,
    } ;
static const short yy_base[100] =
    {
    71, 78, 140, 228, 260, 120, 51, 151, 160, 2,
    148, 13, 10, 199, 279, 173, 178, 78, 47, 221,
    93, 106, 247, 14, 258, 209, 209, 29, 252, 300,
    22, 183, 268, 291, 285, 192, 210, 73, 141, 176,
    290, 230, 224, 111, 279, 204, 191, 111, 92, 200,
    174, 86, 130, 260, 280, 215, 178, 31, 93, 235,
    189, 258, 143, 78, 110, 11, 208, 162, 17, 187,
    218, 121, 299, 8, 146, 50, 46, 65, 240, 99,
    200, 162, 96, 110, 52, 171, 116, 6, 170, 215,
    140, 246, 57, 173, 180, 63, 144, 261, 75, 103,
    } ;
static const short yy_def[100] =
    {
    229, 32, 191, 188, 93, 207, 81, 27, 31, 116,
    119, 100, 211, 290, 282, 95, 106, 220, 93, 65,
    231, 147, 220, 249, 62, 218, 279, 184, 288, 256,
    84, 234, 293, 146, 186, 124, 159, 108, 57, 48,
    170, 236, 270, 66, 262, 214, 237, 242, 221, 160,
    74, 265, 145, 17, 237, 122, 193, 280, 172, 275,
    47, 191, 215, 300, 184, 206, 82, 272, 255, 53,
    35, 49, 217, 3, 35, 266, 228, 45, 186, 61,
    215, 93, 241, 87, 26, 290, 70, 221, 207, 28,
    285, 141, 128, 117, 20, 89, 87, 123, 159, 245,
    } ;
static const short yy_nxt[100] =
    {
    156, 160, 19, 294, 113, 37, 122, 10, 217, 73,
    114, 170, 117, 72, 117, 139, 71, 275, 37, 134,
    5, 222, 31, 77, 212, 102, 35, 291, 124, 109,
    56, 31, 113, 257, 231, 192, 103, 58, 75, 29,
    212, 191, 77, 92, 57, 207, 212, 214, 114, 263,
    179, 22, 270, 268, 159, 13, 289, 164, 222, 39,
    296, 159, 156, 237, 257, 152, 241, 255, 114, 180,
    249, 8, 1, 71, 149, 276, 290, 231, 25, 72,
    48, 34, 245, 200, 12, 256, 20, 79, 284, 238,
    177, 25, 27, 75, 117, 0, 231, 158, 151, 178,
    } ;
static const short yy_chk[100] =
    {
    8, 52, 147, 195, 209, 84, 116, 0, 9, 31,
    139, 38, 6, 46, 182, 132, 157, 259, 28, 193,
    135, 97, 192, 84, 221, 211, 244, 286, 222, 291,
    60, 78, 12, 27, 98, 242, 289, 258, 187, 146,
    277, 159, 77, 209, 117, 64, 195, 300, 228, 254,
    124, 202, 299, 181, 176, 2, 29, 86, 136, 211,
    188, 87, 43, 56, 280, 162, 242, 103, 180, 254,
    49, 142, 224, 93, 172, 150, 113, 257, 101, 300,
    113, 184, 75, 118, 109, 266, 237, 218, 106, 238,
    74, 294, 220, 187, 155, 278, 268, 231, 20, 178,
    } ;
int yylex(void)
{
case 0:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 1:
YY_RULE_SETUP
{ return TOKEN_delta; }
	YY_BREAK
case 2:
YY_RULE_SETUP
{ return TOKEN_jetty; }
	YY_BREAK
case 3:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 4:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 5:
YY_RULE_SETUP
{ return TOKEN_north; }
	YY_BREAK
case 6:
YY_RULE_SETUP
{ return TOKEN_north; }
	YY_BREAK
case 7:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 8:
YY_RULE_SETUP
{ return TOKEN_basin; }
	YY_BREAK
case 9:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 10:
YY_RULE_SETUP
{ return TOKEN_delta; }
	YY_BREAK
case 11:
YY_RULE_SETUP
{ return TOKEN_ocean; }
	YY_BREAK
case 12:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 13:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 14:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 15:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
case 16:
YY_RULE_SETUP
{ return TOKEN_ridge; }
	YY_BREAK
case 17:
YY_RULE_SETUP
{ return TOKEN_zephyr; }
	YY_BREAK
case 18:
YY_RULE_SETUP
{ return TOKEN_valley; }
	YY_BREAK
case 19:
YY_RULE_SETUP
{ return TOKEN_jetty; }
	YY_BREAK
case 20:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 21:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 22:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 23:
YY_RULE_SETUP
{ return TOKEN_slope; }
	YY_BREAK
case 24:
YY_RULE_SETUP
{ return TOKEN_ocean; }
	YY_BREAK
case 25:
YY_RULE_SETUP
{ return TOKEN_canyon; }
	YY_BREAK
case 26:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 27:
YY_RULE_SETUP
{ return TOKEN_north; }
	YY_BREAK
case 28:
YY_RULE_SETUP
{ return TOKEN_basin; }
	YY_BREAK
case 29:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 30:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 31:
YY_RULE_SETUP
{ return TOKEN_zephyr; }
	YY_BREAK
case 32:
YY_RULE_SETUP
{ return TOKEN_estuary; }
	YY_BREAK
case 33:
YY_RULE_SETUP
{ return TOKEN_dune; }
	YY_BREAK
case 34:
YY_RULE_SETUP
{ return TOKEN_valley; }
	YY_BREAK
case 35:
YY_RULE_SETUP
{ return TOKEN_delta; }
	YY_BREAK
case 36:
YY_RULE_SETUP
{ return TOKEN_anchor; }
	YY_BREAK
case 37:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 38:
YY_RULE_SETUP
{ return TOKEN_ocean; }
	YY_BREAK
case 39:
YY_RULE_SETUP
{ return TOKEN_dune; }
	YY_BREAK
case 40:
YY_RULE_SETUP
{ return TOKEN_canyon; }
	YY_BREAK
case 41:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 42:
YY_RULE_SETUP
{ return TOKEN_north; }
	YY_BREAK
case 43:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 44:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 45:
YY_RULE_SETUP
{ return TOKEN_jetty; }
	YY_BREAK
case 46:
YY_RULE_SETUP
{ return TOKEN_north; }
	YY_BREAK
case 47:
YY_RULE_SETUP
{ return TOKEN_fjord; }
	YY_BREAK
case 48:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 49:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 50:
YY_RULE_SETUP
{ return TOKEN_estuary; }
	YY_BREAK
case 51:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 52:
YY_RULE_SETUP
{ return TOKEN_ember; }
	YY_BREAK
case 53:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 54:
YY_RULE_SETUP
{ return TOKEN_zephyr; }
	YY_BREAK
case 55:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 56:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 57:
YY_RULE_SETUP
{ return TOKEN_inlet; }
	YY_BREAK
case 58:
YY_RULE_SETUP
{ return TOKEN_ridge; }
	YY_BREAK
case 59:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 60:
YY_RULE_SETUP
{ return TOKEN_delta; }
	YY_BREAK
case 61:
YY_RULE_SETUP
{ return TOKEN_upland; }
	YY_BREAK
case 62:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
case 63:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 64:
YY_RULE_SETUP
{ return TOKEN_upland; }
	YY_BREAK
case 65:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 66:
YY_RULE_SETUP
{ return TOKEN_ledge; }
	YY_BREAK
case 67:
YY_RULE_SETUP
{ return TOKEN_cedar; }
	YY_BREAK
case 68:
YY_RULE_SETUP
{ return TOKEN_estuary; }
	YY_BREAK
case 69:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 70:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 71:
YY_RULE_SETUP
{ return TOKEN_upland; }
	YY_BREAK
case 72:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 73:
YY_RULE_SETUP
{ return TOKEN_canyon; }
	YY_BREAK
case 74:
YY_RULE_SETUP
{ return TOKEN_valley; }
	YY_BREAK
case 75:
YY_RULE_SETUP
{ return TOKEN_ember; }
	YY_BREAK
case 76:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 77:
YY_RULE_SETUP
{ return TOKEN_slope; }
	YY_BREAK
case 78:
YY_RULE_SETUP
{ return TOKEN_anchor; }
	YY_BREAK
case 79:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 80:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 81:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 82:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 83:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 84:
YY_RULE_SETUP
{ return TOKEN_fjord; }
	YY_BREAK
case 85:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 86:
YY_RULE_SETUP
{ return TOKEN_upland; }
	YY_BREAK
case 87:
YY_RULE_SETUP
{ return TOKEN_estuary; }
	YY_BREAK
case 88:
YY_RULE_SETUP
{ return TOKEN_dune; }
	YY_BREAK
case 89:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 90:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 91:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 92:
YY_RULE_SETUP
{ return TOKEN_basin; }
	YY_BREAK
case 93:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 94:
YY_RULE_SETUP
{ return TOKEN_valley; }
	YY_BREAK
case 95:
YY_RULE_SETUP
{ return TOKEN_cedar; }
	YY_BREAK
case 96:
YY_RULE_SETUP
{ return TOKEN_estuary; }
	YY_BREAK
case 97:
YY_RULE_SETUP
{ return TOKEN_basin; }
	YY_BREAK
case 98:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 99:
YY_RULE_SETUP
{ return TOKEN_slope; }
	YY_BREAK
case 100:
YY_RULE_SETUP
{ return TOKEN_zephyr; }
	YY_BREAK
case 101:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
case 102:
YY_RULE_SETUP
{ return TOKEN_dune; }
	YY_BREAK
case 103:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 104:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 105:
YY_RULE_SETUP
{ return TOKEN_ridge; }
	YY_BREAK
case 106:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 107:
YY_RULE_SETUP
{ return TOKEN_amber; }
	YY_BREAK
case 108:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 109:
YY_RULE_SETUP
{ return TOKEN_delta; }
	YY_BREAK
case 110:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 111:
YY_RULE_SETUP
{ return TOKEN_inlet; }
	YY_BREAK
case 112:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 113:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 114:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 115:
YY_RULE_SETUP
{ return TOKEN_valley; }
	YY_BREAK
case 116:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 117:
YY_RULE_SETUP
{ return TOKEN_ember; }
	YY_BREAK
case 118:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 119:
YY_RULE_SETUP
{ return TOKEN_slope; }
	YY_BREAK
case 120:
YY_RULE_SETUP
{ return TOKEN_ridge; }
	YY_BREAK
case 121:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 122:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 123:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
case 124:
YY_RULE_SETUP
{ return TOKEN_fjord; }
	YY_BREAK
case 125:
YY_RULE_SETUP
{ return TOKEN_willow; }
	YY_BREAK
case 126:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 127:
YY_RULE_SETUP
{ return TOKEN_slope; }
	YY_BREAK
case 128:
YY_RULE_SETUP
{ return TOKEN_thicket; }
	YY_BREAK
case 129:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 130:
YY_RULE_SETUP
{ return TOKEN_inlet; }
	YY_BREAK
case 131:
YY_RULE_SETUP
{ return TOKEN_marsh; }
	YY_BREAK
case 132:
YY_RULE_SETUP
{ return TOKEN_dune; }
	YY_BREAK
case 133:
YY_RULE_SETUP
{ return TOKEN_haven; }
	YY_BREAK
case 134:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 135:
YY_RULE_SETUP
{ return TOKEN_canyon; }
	YY_BREAK
case 136:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 137:
YY_RULE_SETUP
{ return TOKEN_jetty; }
	YY_BREAK
case 138:
YY_RULE_SETUP
{ return TOKEN_quartz; }
	YY_BREAK
case 139:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
case 140:
YY_RULE_SETUP
{ return TOKEN_anchor; }
	YY_BREAK
case 141:
YY_RULE_SETUP
{ return TOKEN_upland; }
	YY_BREAK
case 142:
YY_RULE_SETUP
{ return TOKEN_cedar; }
	YY_BREAK
case 143:
YY_RULE_SETUP
{ return TOKEN_ocean; }
	YY_BREAK
case 144:
YY_RULE_SETUP
{ return TOKEN_beacon; }
	YY_BREAK
case 145:
YY_RULE_SETUP
{ return TOKEN_prairie; }
	YY_BREAK
case 146:
YY_RULE_SETUP
{ return TOKEN_grove; }
	YY_BREAK
case 147:
YY_RULE_SETUP
{ return TOKEN_ridge; }
	YY_BREAK
case 148:
YY_RULE_SETUP
{ return TOKEN_yonder; }
	YY_BREAK
case 149:
YY_RULE_SETUP
{ return TOKEN_knoll; }
	YY_BREAK
}
