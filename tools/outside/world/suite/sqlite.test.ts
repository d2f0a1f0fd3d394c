import { sqlitePlace } from "./places.ts";
import { validate } from "./validate.ts";

validate(sqlitePlace());
