import { part } from "./conformance.ts";

part(0, 4);
