import { join } from "node:path";
import { docsSample } from "../../agents/docs.ts";

docsSample(join(import.meta.dirname, ".."), "openai-agents", ["Invoice 7 is paid, after 6 items."]);
