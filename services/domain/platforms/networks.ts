/** The networks, one line each: `registry.ts` reads them, and tsc refuses a platform of the enum that is not here. */
export { bluesky } from './bluesky/index.ts';
export { facebook } from './facebook/index.ts';
export { instagram } from './instagram/index.ts';
export { linkedin } from './linkedin/index.ts';
export { pinterest } from './pinterest/index.ts';
export { telegram } from './telegram/index.ts';
export { threads } from './threads/index.ts';
export { tiktok } from './tiktok/index.ts';
export { x } from './x/index.ts';
export { youtube } from './youtube/index.ts';
