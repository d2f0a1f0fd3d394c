import { EventEmitterPubSub, type PubSub } from "@mastra/core/events";
import { perSite } from "../agent/site.ts";
import { currentSite } from "../sdk/current.ts";

/** What Tape needs of an agent of Mastra. */
export interface StreamingAgent {
  /** The agent's channel for events. */
  getPubSub(): PubSub | undefined;
}

const channelOf = perSite(() => new EventEmitterPubSub());

/**
 * Prepares an agent whose streams have a memory; it returns the same agent. Mastra lets one stream at a time talk in a
 * thread of its process, and the stream of a run that has parked never ends there: the next one would wait for it. So in a
 * run, Mastra sees the streams of this run alone. Two runs in one thread are told apart by {@link TapeStorage}.
 *
 * @example
 * const agent = durableAgent(new Agent({ id: "treasurer", name: "Treasurer", instructions, model, tools: kit.tools, memory }));
 */
export function durableAgent<A extends StreamingAgent>(agent: A): A {
  const getPubSub = agent.getPubSub.bind(agent);
  agent.getPubSub = () => {
    const site = currentSite();
    return site === undefined ? getPubSub() : channelOf(site.context);
  };
  return agent;
}
