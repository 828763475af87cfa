import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';
import { failureOf } from '../kit/errors.ts';
import type { Creator } from './creator.ts';

/** The members `post_info` and `source_info` of a post, and what TikTok refuses of it. */

type Asked = Pick<PublishRequest, 'content' | 'overrides' | 'aiDisclosure' | 'coverFrameMs' | 'media'>;

const isOn = ({ overrides }: Asked, key: string): boolean => overrides[key] === true;

export const levelOf = ({ overrides }: Pick<PublishRequest, 'overrides'>): string =>
  typeof overrides.privacyLevel === 'string' ? overrides.privacyLevel : '';

/** Found before a byte is sent, right after TikTok was asked; null: nothing. */
export const refusalOf = (request: Asked, { levels, maxDurationMs }: Creator): Failure | null => {
  const level = levelOf(request);
  const content = (said: string): Failure => failureOf('content', null, said);
  if (!levels.includes(level)) {
    const allowed = levels.length === 0 ? 'none' : levels.join(', ');
    return content(`privacyLevel is ${level === '' ? 'not set' : level}; TikTok allows this account now: ${allowed}`);
  }
  // "Content sharing guidelines": whether the interface refuses it is not documented.
  if (isOn(request, 'brandedContent') && level === 'SELF_ONLY') {
    return content('branded content cannot be private: brandedContent goes with no privacyLevel SELF_ONLY');
  }
  const [file] = request.media;
  if (file === undefined) return content('a post needs a video or pictures');
  if (file.kind !== 'video' || maxDurationMs === null || (file.durationMs ?? 0) <= maxDurationMs) return null;
  const said = `TikTok takes videos of at most ${maxDurationMs / 1_000} s of this account`;
  return failureOf('media', null, said, file.mediaId);
};

/** What the account has off stays off, whatever the post asks for. Both toggles of brands are documented as required. */
const ofEach = (request: Asked, { noComment }: Creator) => ({
  privacy_level: levelOf(request),
  disable_comment: noComment || isOn(request, 'disableComment'),
  brand_content_toggle: isOn(request, 'brandedContent'),
  brand_organic_toggle: isOn(request, 'yourBrand'),
});

/** "Direct Post", `post_info`: the caption of a video is its title. */
export const videoInfo = (request: Asked, creator: Creator): { readonly [name: string]: Json } => ({
  title: request.content,
  ...ofEach(request, creator),
  disable_duet: creator.noDuet || isOn(request, 'disableDuet'),
  disable_stitch: creator.noStitch || isOn(request, 'disableStitch'),
  is_aigc: request.aiDisclosure || isOn(request, 'isAigc'),
  ...(request.coverFrameMs === null ? {} : { video_cover_timestamp_ms: request.coverFrameMs }),
});

/** "Photo Post": its text is the description. It has no duets, no stitches and no label for what a machine made. */
export const photoBody = (request: Asked, creator: Creator, addresses: readonly string[]) => ({
  ...{ media_type: 'PHOTO', post_mode: 'DIRECT_POST' },
  post_info: { description: request.content, ...ofEach(request, creator), auto_add_music: false },
  source_info: { source: 'PULL_FROM_URL', photo_images: addresses, photo_cover_index: 0 },
});
