import { agentSuite } from "../../agents/suite.ts";
import { mastra } from "./framework.ts";

agentSuite(mastra);
