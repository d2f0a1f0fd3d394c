import type { INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import type { INetworkPolicyEgressRule } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicyEgressRule";
import type { Egress, Plan, Service } from "../plan.ts";
import { labelsOf, metadata, portOf } from "./container.ts";

/** A cloud's metadata server hands out credentials of the node. */
const metadataAddress = "169.254.169.254/32";
const everywhere = { ipBlock: { cidr: "0.0.0.0/0", except: [metadataAddress] } };
const everywhere6 = { ipBlock: { cidr: "::/0" } };

const dns = {
  ports: [
    { protocol: "UDP", port: 53 },
    { protocol: "TCP", port: 53 },
  ],
} satisfies INetworkPolicyEgressRule;

const rule = ({ cidr, port }: Egress) =>
  ({
    to: cidr === "0.0.0.0/0" ? [everywhere, everywhere6] : [{ ipBlock: { cidr, ...exceptMetadata(cidr) } }],
    ports: [{ protocol: "TCP", port }],
  }) satisfies INetworkPolicyEgressRule;

/** A network that contains the metadata address: Kubernetes accepts an exception only within the network. */
function exceptMetadata(cidr: string): { except?: string[] } {
  const [address = "", bits = "32"] = cidr.split("/");
  if (address.includes(":")) return {};
  const number = (text: string): number => text.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const size = 2 ** (32 - Number(bits));
  const contains = Math.floor(number(address) / size) === Math.floor(number("169.254.169.254") / size);
  return contains && Number(bits) < 32 ? { except: [metadataAddress] } : {};
}

/** Denies everything that leaves or reaches the pods of an object, except what is listed. */
export function networkPolicy(plan: Plan, object: string, egress: Service["egress"], service?: Service) {
  const open = egress === "any" ? [{ to: [everywhere, everywhere6] }] : egress.map(rule);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: metadata(plan, object),
    spec: {
      podSelector: { matchLabels: labelsOf(object) },
      policyTypes: ["Ingress", "Egress"],
      ingress: service === undefined ? [] : [{ ports: [{ protocol: "TCP", port: portOf(service) }] }],
      egress: [dns, ...plan.databaseEgress.map(rule), ...open],
    },
  } satisfies INetworkPolicy;
}
