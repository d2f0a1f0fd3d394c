import { join } from "node:path";
import { docsSample } from "../../agents/docs.ts";

docsSample(join(import.meta.dirname, ".."), "mastra", ["Invoice 7 is paid, after 6 messages."]);
