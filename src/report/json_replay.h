/* The member "replay" of a model's object. */
#ifndef ONV_REPORT_JSON_REPLAY_H
#define ONV_REPORT_JSON_REPLAY_H

#include "device/replays.h"
#include "report/json.h"

/* Nothing where no replay was asked for. */
void onv_json_write_replays(onv_json *json, const onv_replays *replays);

#endif
