import { crash } from "./crash.ts";
import { events } from "./events.ts";
import { hooks } from "./hooks.ts";
import { postgresPlace } from "./places.ts";
import { queue } from "./queue.ts";
import { streams } from "./streams.ts";

const place = postgresPlace();
for (const suite of [events, hooks, streams, queue, crash]) suite(place);
