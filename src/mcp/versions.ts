/** Versions of the Model Context Protocol that we speak, newest first. */
export const protocolVersions = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;
export type ProtocolVersion = (typeof protocolVersions)[number];

export const latestVersion: ProtocolVersion = protocolVersions[0];
/** What a request over HTTP without the header speaks, by the specification. */
export const assumedVersion: ProtocolVersion = "2025-03-26";

export const isVersion = (text: unknown): text is ProtocolVersion =>
  (protocolVersions as readonly unknown[]).includes(text);

/** The version of the client if we speak it; otherwise our newest, and the client decides whether it continues. */
export const negotiated = (requested: unknown): ProtocolVersion => (isVersion(requested) ? requested : latestVersion);

/** Only this version has batches. */
export const hasBatches = (version: ProtocolVersion): boolean => version === "2025-03-26";

/** From this version on a result may have a structured form beside its text. */
export const hasStructure = (version: ProtocolVersion): boolean => version >= "2025-06-18";
