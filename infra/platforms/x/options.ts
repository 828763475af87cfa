import type { AppLimits } from '#contracts/ports/app-limits.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { OnLimits } from '#contracts/ports/platform.ts';

/** The operator's app in X's developer console. */
export interface XApp {
  readonly clientId: string;
  /** Null: a public client, which has none. */
  readonly clientSecret: string | null;
}

export interface XOptions {
  readonly http: NetworkHttp;
  readonly credentials: CredentialStore;
  readonly app: XApp;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Of the app: shared by everything that acts for it. */
  readonly appLimits: AppLimits;
  /** Default `https://api.x.com`. */
  readonly api?: string;
  /** Milliseconds that the create call may take. Default 10,000. */
  readonly boundaryDeadlineMs?: number;
  /**
   * The name that is tried first: the OpenAPI document says `post.fields`, the changelog and the guides `tweet.fields`.
   * Default `tweet.fields`.
   */
  readonly fieldsName?: 'tweet.fields' | 'post.fields';
  /** Bytes of a segment of an upload: 1 to 4 MB are proven. Default 4,000,000. */
  readonly segmentBytes?: number;
  /** Milliseconds that one attempt waits for X to process a file; the next attempt goes on. Default 600,000. */
  readonly processingMs?: number;
  /** Ends early when the signal aborts. Default: by the clock. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called with what X says of an account's limits for posts. */
  readonly onLimits?: OnLimits;
  /** What the app may read in a month, since X bills each read: a post is one, a person two; absent: no bound. */
  readonly monthlyReads?: number;
}

/** The app, as its limits are named. */
export const appOf = ({ app }: Pick<XOptions, 'app'>): string => `x:${app.clientId}`;

export const defaultApi = 'https://api.x.com';
