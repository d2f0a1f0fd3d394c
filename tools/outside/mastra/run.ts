// The adapter inside Mastra's own agents, with a scripted model of the AI SDK.
import { typeCheck, vitest } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";

const folder = import.meta.dirname;
finish(sumOf([await typeCheck(folder), await vitest(folder)]));
