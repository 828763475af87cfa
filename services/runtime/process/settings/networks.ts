import type { JsonWebKey } from 'node:crypto';
import { botToken, integer, login, optional, signingKeys, text, url, variable } from '../config-values.ts';

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
  blueskyOauthKeys: variable(
    'BLUESKY_OAUTH_KEYS',
    optional(signingKeys),
    null as readonly JsonWebKey[] | null,
    'Bluesky: the private key of your client as a JWK; without it owners give an app password',
  ),
  tourBluesky: variable(
    'TOUR_BLUESKY',
    optional(login),
    null as { readonly handle: string; readonly password: string } | null,
    'handle:app-password of an account to which the tour publishes one real post',
  ),
  xClientId: variable(
    'X_CLIENT_ID',
    optional(text),
    null as string | null,
    'X: the client id of your app; without it X is not offered',
  ),
  xClientSecret: variable(
    'X_CLIENT_SECRET',
    optional(text),
    null as string | null,
    'X: its client secret; a public client has none',
  ),
  xApi: variable('X_API', url('https:', 'http:'), 'https://api.x.com', 'X: the API'),
  xAuthorize: variable(
    'X_AUTHORIZE',
    url('https:', 'http:'),
    'https://x.com/i/oauth2/authorize',
    'X: the page on which an owner consents',
  ),
  xMonthlyReads: variable(
    'X_MONTHLY_READS',
    integer(0, 100_000_000),
    100_000,
    'X: what may be read in a month, a post one, an account two: X bills each; at 0 no account can be connected',
  ),
  telegramBotToken: variable(
    'TELEGRAM_BOT_TOKEN',
    optional(botToken),
    null as string | null,
    'Telegram: token of your own bot, which clients add to their channels; without it they give one of theirs',
  ),
  telegramApi: variable(
    'TELEGRAM_API',
    url('https:', 'http:'),
    'https://api.telegram.org',
    'Telegram: the Bot API, or a Bot API server of your own',
  ),
} as const;
