import { part } from "./conformance.ts";

part(2, 4);
