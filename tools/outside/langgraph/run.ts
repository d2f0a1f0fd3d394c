// LangGraph's validation suite of checkpointers on SQLite and PostgreSQL, and the adapter in LangGraph's own agents.
import { typeCheck, vitest } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";

const folder = import.meta.dirname;
finish(sumOf([await typeCheck(folder), await vitest(folder)]));
