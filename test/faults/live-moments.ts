import type { LiveActionName } from './live-load.ts';
import type { LiveNetworks, LivePlatform } from './live-networks.ts';

/** Calls to networks at which publishers die: before the network takes the call, or after it has, without an answer. */
export interface Moment {
  readonly name: string;
  readonly by: LiveActionName;
  readonly on: LivePlatform;
  arm(networks: LiveNetworks, run: () => void): void;
}

const both = ['before', 'after'] as const;

const names = {
  x: 'X',
  pinterest: 'Pinterest',
  threads: 'Threads',
  linkedin: 'LinkedIn',
  youtube: 'YouTube',
  tiktok: 'TikTok',
  facebook: 'Facebook',
  instagram: 'Instagram',
  bluesky: 'Bluesky',
} as const;

const of =
  (on: keyof typeof names) =>
  (route: string, by: LiveActionName, says?: string): readonly Moment[] =>
    both.map((when) => ({
      ...{ name: `${names[on]} ${route}${says === undefined ? '' : ` ${says}`}, ${when} it is taken`, by, on },
      arm: (networks, run) =>
        networks.script(on, { route, ...(says === undefined ? {} : { says }), then: { run, then: `silent_${when}` } }),
    }));

const [ofX, ofPinterest, ofThreads, ofLinkedIn] = [of('x'), of('pinterest'), of('threads'), of('linkedin')];
const [ofYouTube, ofTikTok, ofFacebook] = [of('youtube'), of('tiktok'), of('facebook')];
const [ofInstagram, ofBluesky] = [of('instagram'), of('bluesky')];

const ofTelegram = (method: string, by: LiveActionName): readonly Moment[] =>
  both.map((when) => ({
    ...{ name: `Telegram ${method}, ${when} it is taken`, by, on: 'telegram' },
    // Before what waits there: faults that no call has met yet would each take an action first.
    arm: ({ telegram: { armed } }, run) =>
      void armed.set(method, [{ kind: 'met', run, isTaken: when === 'after' }, ...(armed.get(method) ?? [])]),
  }));

const append = 'POST /2/media/upload/:id/append';
/** The one after the first. */
const later = (on: keyof typeof names, route: string): readonly Moment[] =>
  of(on)(route, 'video').map((moment) => ({
    ...{ ...moment, name: `${moment.name}, not the first` },
    arm: (networks, run) => {
      networks.script(on, { route, then: { run: () => undefined, then: 'act' } });
      moment.arm(networks, run);
    },
  }));
const part = 'PUT /dms-uploads/video';

export const moments: readonly Moment[] = [
  ...ofX('POST /2/media/upload/initialize', 'video'),
  ...ofX(append, 'video'),
  ...later('x', append),
  ...ofX('POST /2/media/upload/:id/finalize', 'video'),
  ...ofX('GET /2/media/upload', 'video'),
  ...ofX('POST /2/media/upload', 'album'),
  ...ofX('POST /2/media/metadata', 'album'),
  ...ofX('POST /2/tweets', 'text'),
  ...ofX('POST /2/tweets', 'thread', '"in_reply_to_tweet_id"'),
  ...ofX('POST /2/oauth2/token', 'lapse'),
  ...ofX('GET /2/users/:id/tweets', 'lost'),
  ...ofPinterest('POST /v5/media', 'video'),
  ...ofPinterest('POST /storage/', 'video'),
  ...ofPinterest('GET /v5/media/:id', 'video'),
  ...ofPinterest('POST /v5/pins', 'album'),
  ...ofPinterest('GET /v5/boards/:id/pins', 'lost'),
  ...ofPinterest('POST /v5/oauth/token', 'lapse'),
  ...ofThreads('GET /:id/threads_publishing_limit', 'text'),
  ...ofThreads('POST /:id/threads', 'text'),
  ...ofThreads('POST /:id/threads', 'album', 'IMAGE'),
  ...ofThreads('POST /:id/threads', 'album', 'CAROUSEL'),
  ...ofThreads('GET /:id', 'text'),
  ...ofThreads('POST /:id/threads_publish', 'text'),
  ...ofThreads('POST /:id/threads_publish', 'thread'),
  ...ofThreads('GET /:id/threads', 'lost'),
  ...ofLinkedIn('POST /rest/videos', 'video', 'initializeUpload'),
  ...ofLinkedIn(part, 'video'),
  ...later('linkedin', part),
  ...ofLinkedIn('POST /rest/videos', 'video', 'finalizeUpload'),
  ...ofLinkedIn('GET /rest/videos/:id', 'video'),
  ...ofLinkedIn('PUT /dms-uploads/image', 'album'),
  ...ofLinkedIn('POST /rest/posts', 'text'),
  ...ofLinkedIn('POST /rest/socialActions/:id/comments', 'commented'),
  ...ofLinkedIn('GET /rest/posts', 'lost'),
  ...ofLinkedIn('POST /oauth/v2/accessToken', 'lapse'),
  ...ofYouTube('POST /upload/youtube/v3/videos', 'video'),
  ...ofYouTube('PUT part', 'video'),
  ...ofYouTube('PUT last', 'video'),
  // Between the acceptance and the video that people see.
  ...ofYouTube('GET /youtube/v3/videos', 'video'),
  ...ofYouTube('PUT probe', 'lost'),
  ...ofYouTube('POST /token', 'lapse'),
  ...ofTikTok('POST /v2/post/publish/creator_info/query/', 'video'),
  ...ofTikTok('POST /v2/post/publish/video/init/', 'video'),
  ...ofTikTok('PUT /video/', 'video'),
  ...ofTikTok('POST /v2/post/publish/status/fetch/', 'video'),
  ...ofTikTok('POST /v2/oauth/token/', 'lapse'),
  ...ofFacebook('POST /:id/photos', 'album'),
  ...ofFacebook('POST /:id/feed', 'album', 'media_fbid'),
  ...ofFacebook('POST /:id/feed', 'text'),
  ...ofFacebook('GET /:id', 'text', 'permalink_url'),
  ...ofFacebook('POST /:id/video_reels start', 'video'),
  ...ofFacebook('POST /video-upload/:id', 'video'),
  ...ofFacebook('POST /:id/video_reels finish', 'video'),
  ...ofFacebook('GET /:id/published_posts', 'lost'),
  ...ofFacebook('GET /:id', 'lapse', 'access_token'),
  ...ofInstagram('GET /:id/content_publishing_limit', 'album'),
  ...ofInstagram('POST /:id/media', 'album'),
  ...ofInstagram('POST /:id/media', 'album', 'CAROUSEL'),
  ...ofInstagram('POST /:id/media', 'video', 'REELS'),
  ...ofInstagram('GET /:id', 'video', 'status_code'),
  ...ofInstagram('POST /:id/media_publish', 'album'),
  ...ofInstagram('POST /:id/media_publish', 'video'),
  ...ofInstagram('GET /:id/media', 'lost'),
  ...ofBluesky('POST com.atproto.repo.uploadBlob', 'album'),
  ...ofBluesky('POST com.atproto.repo.putRecord', 'text'),
  ...ofBluesky('POST com.atproto.repo.putRecord', 'commented', '"reply"'),
  ...ofBluesky('GET com.atproto.repo.getRecord', 'lost'),
  ...ofBluesky('POST com.atproto.server.refreshSession', 'lapse'),
  ...ofTelegram('getChat', 'text'),
  ...ofTelegram('sendMessage', 'text'),
  ...ofTelegram('sendVideo', 'video'),
  ...ofTelegram('sendMediaGroup', 'album'),
];
