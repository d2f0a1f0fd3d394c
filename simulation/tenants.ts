export const tenant = "simulated";

/** Another tenant of the same store, who knows every number, name and secret of ours. */
export const strangerTenant = "strangers";

/** A third one, which has things of its own and a quota. */
export const neighbourTenant = "neighbours";
