import { validate } from "./validate.ts";

validate("the world on SQLite", async (folder) => `sqlite:${folder}/tape.db`);
