import { join } from "node:path";
import { docsSample } from "../../agents/docs.ts";

docsSample(join(import.meta.dirname, ".."), "adk", ["Invoice 7 is paid, after 5 messages."]);
