import type { JsonWebKey } from 'node:crypto';
import { botToken, login, optional, signingKeys, siteTokens, url, variable } from '../config-values.ts';

/** The networks that accounts are connected to without an app of OAuth 2; `apps.ts` has the others. */
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
  tiktokSiteProof: variable(
    'TIKTOK_SITE_PROOF',
    siteTokens,
    [] as readonly string[],
    'TikTok: what stands between tiktok and .txt in the name of each file by which it checks that this host is yours, with commas between',
  ),
} as const;
