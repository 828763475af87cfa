import { url } from '../config-values.ts';
import { variable } from './variable.ts';

/** The networks that accounts are connected to. */
export const networkSettings = {
  blueskyResolver: variable(
    'BLUESKY_RESOLVER',
    url('https:', 'http:'),
    'https://public.api.bsky.app',
    'Bluesky: server that knows which account a handle names',
  ),
  blueskyDirectory: variable(
    'BLUESKY_DIRECTORY',
    url('https:', 'http:'),
    'https://plc.directory',
    'Bluesky: directory of identities (did:plc)',
  ),
  blueskyAppView: variable(
    'BLUESKY_APP_VIEW',
    url('https:', 'http:'),
    'https://public.api.bsky.app',
    'Bluesky: server that counts likes, replies and followers',
  ),
  telegramApi: variable(
    'TELEGRAM_API',
    url('https:', 'http:'),
    'https://api.telegram.org',
    'Telegram: the Bot API, or a Bot API server of your own',
  ),
} as const;
