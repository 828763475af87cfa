import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { OnLimits } from '#contracts/ports/platform.ts';
import type { PushedPosts } from '#contracts/ports/pushed-posts.ts';

export interface TelegramOptions {
  readonly http: NetworkHttp;
  readonly credentials: CredentialStore;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Called with what the network says of an account's limits for posts. */
  readonly onLimits?: OnLimits;
  /** Milliseconds that a call may take. An upload is a part of the call. Default 120,000. */
  readonly boundaryDeadlineMs?: number;
  /** Origin of the Bot API, the cloud's or an own server's. Default `https://api.telegram.org`. */
  readonly api?: string;
  /** Separates the parts of a form. Default: random, so that no file can hold it. */
  readonly separator?: () => string;
  /** Token of the operator's bot; null: there is none. */
  readonly operatorToken: string | null;
  /** What the updates of the operator's bot reported of posts. Absent: a post has no figures. */
  readonly pushed?: Pick<PushedPosts, 'of'>;
}

export const cloud = 'https://api.telegram.org';
