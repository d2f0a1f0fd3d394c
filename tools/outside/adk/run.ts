// The adapter inside ADK's own runner and agents, with a scripted model.
import { typeCheck, vitest } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";

const folder = import.meta.dirname;
finish(sumOf([await typeCheck(folder), await vitest(folder)]));
