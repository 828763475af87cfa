import type { Platform } from '#schemas/common.ts';

/** The version of each network's API that its adapter speaks, and when the network ends it. */

export interface ApiVersion {
  readonly version: string;
  /** A date, from which the network no longer answers; null: it has named none. */
  readonly endsAt: string | null;
  /** Where the network says so, and as of when. */
  readonly source: string;
}

export type ApiVersions = Readonly<Partial<Record<Platform, ApiVersion>>>;

export const apiVersions: ApiVersions = {
  x: { version: 'API v2', endsAt: null, source: 'docs.x.com, OpenAPI 2.167 of 2026-08-22' },
  bluesky: {
    version: 'lexicons com.atproto.* and app.bsky.*',
    endsAt: null,
    source: 'github.com/bluesky-social/atproto, August 2026: a lexicon has no versions',
  },
  telegram: { version: 'Bot API 10.0', endsAt: null, source: 'core.telegram.org/bots/api-changelog, May 2026' },
};
