import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { OnLimits } from '#contracts/ports/platform.ts';
import type { ProofKeys } from './oauth/client.ts';

export interface BlueskyOptions {
  readonly http: NetworkHttp;
  readonly credentials: CredentialStore;
  /** Keys of our client, by which it refreshes what owners consented to. Default: none. */
  readonly clientKeys?: ProofKeys;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Called with what the network says of an account's limits for posts. */
  readonly onLimits?: OnLimits;
  /** Milliseconds that the write may take. Default 10,000. */
  readonly boundaryDeadlineMs?: number;
  /** Origin of the public app view, which counts. Default `https://public.api.bsky.app`. */
  readonly appView?: string;
  /** Origin of the service that makes videos ready. Default `https://video.bsky.app`. */
  readonly videoService?: string;
  /** Milliseconds between two questions for a video, and that one attempt waits. Default 1,500 and 40,000. */
  readonly videoPollMs?: number;
  readonly videoWaitMs?: number;
}
