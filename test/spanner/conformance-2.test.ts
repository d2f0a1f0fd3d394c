import { part } from "./conformance.ts";

part(1, 4);
