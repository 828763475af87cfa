export { BlueskyAdapter } from './adapter.ts';
export { blueskyConnector, type ConnectOptions, connectByAppPassword } from './connect.ts';
export { BlueskyInsights } from './insights.ts';
export { type BlueskyConfig, liveBluesky } from './live.ts';
export type { ProofKeys } from './oauth/client.ts';
export { blueskyConsent } from './oauth/connect.ts';
export type { BlueskyOptions } from './options.ts';
export { endSession, refreshSession } from './session.ts';
