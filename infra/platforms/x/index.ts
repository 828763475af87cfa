export { XAdapter } from './adapter.ts';
export { xConsent } from './connect.ts';
export { liveX, type XConfig } from './live.ts';
export * from './oauth.ts';
export type { XApp, XOptions } from './options.ts';
