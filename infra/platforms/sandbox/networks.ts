/** The networks that the sandbox imitates, one line each: tsc refuses a platform of the enum that is not here. */
export { bluesky } from './networks/bluesky.ts';
export { facebook } from './networks/facebook.ts';
export { instagram } from './networks/instagram.ts';
export { linkedin } from './networks/linkedin.ts';
export { pinterest } from './networks/pinterest.ts';
export { telegram } from './networks/telegram.ts';
export { threads } from './networks/threads.ts';
export { tiktok } from './networks/tiktok.ts';
export { x } from './networks/x.ts';
export { youtube } from './networks/youtube.ts';
