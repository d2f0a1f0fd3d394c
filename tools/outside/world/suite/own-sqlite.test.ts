import { describe, it } from "vitest";
import { crash } from "./crash.ts";
import { events } from "./events.ts";
import { hooks } from "./hooks.ts";
import { sqlitePlace } from "./places.ts";
import { queue } from "./queue.ts";
import { streams } from "./streams.ts";

const cases = { it, place: sqlitePlace() };
describe("events", () => events(cases));
describe("hooks", () => hooks(cases));
describe("streams", () => streams(cases));
describe("messages", () => queue(cases));
describe("kill -9", () => crash(cases));
