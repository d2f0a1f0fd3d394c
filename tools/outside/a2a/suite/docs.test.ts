import { join } from "node:path";
import { docsSample } from "../../agents/docs.ts";

docsSample(join(import.meta.dirname, ".."), "a2a", ["Pay invoice 7? → Invoice 7 is paid."]);
