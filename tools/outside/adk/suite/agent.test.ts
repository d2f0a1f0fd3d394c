import { LogLevel, setLogLevel } from "@google/adk";
import { agentSuite } from "../../agents/suite.ts";
import { adk } from "./framework.ts";

setLogLevel(LogLevel.ERROR);
agentSuite(adk);
