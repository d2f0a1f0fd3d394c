import { join } from "node:path";
import { docsSample } from "../../agents/docs.ts";

docsSample(join(import.meta.dirname, ".."), "world", ["{ result: 3 }", "3"]);
