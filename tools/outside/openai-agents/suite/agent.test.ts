import { agentSuite } from "../../agents/suite.ts";
import { openaiAgents } from "./framework.ts";

agentSuite(openaiAgents);
