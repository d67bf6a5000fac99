/* SQL files of this room, built into the program: viewer/reports (named answers) and viewer/causes (rules of
 * `report`). */
#ifndef ST_VIEWER_SQL_H
#define ST_VIEWER_SQL_H

struct vw_sql {
    const char *name; /* the file's, without .sql; NULL ends the array */

    const char *text;
};

extern const struct vw_sql vw_reports[];

extern const struct vw_sql vw_causes[];

#endif
