// Vercel Workflow's suite for worlds on SQLite and PostgreSQL, and what it does not ask: crashes, order, hooks, streams.
import { typeCheck, vitest } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";

const folder = import.meta.dirname;
finish(sumOf([await typeCheck(folder), await vitest(folder)]));
