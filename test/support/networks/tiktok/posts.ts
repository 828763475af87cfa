import { type Answer, fine, int64, invalid, ofFiles, Refusal, refuse, withStatus } from './answer.ts';
import { jsonOf, personOf, type Request } from './request.ts';
import { type Info, levels, type Person, type Post, type State, type Upload } from './state.ts';
import { flag, list, object, oneOf, text, whole } from './strict.ts';

/** "Query Creator Info", "Direct Post", "Photo Post", "Media transfer guide", "Get Post Status". */

export const creatorInfo = (state: State, request: Request): Answer => {
  const person = personOf(state, request, 'video.publish');
  if (request.body.length > 0) object({})(jsonOf(request), 'body');
  if (person.isBanned) throw new Refusal(withStatus('spam_risk_user_banned_from_posting', 200));
  if (person.postsADay !== null && state.postsOf(person.id) >= person.postsADay) {
    throw new Refusal(withStatus('spam_risk_too_many_posts', 200));
  }
  if (isBeyondCap(state, person)) throw new Refusal(withStatus('reached_active_user_cap', 200));
  return fine({
    ...{ creator_avatar_url: 'https://p16.example/a.jpg', creator_username: person.username },
    ...{ creator_nickname: person.nickname, privacy_level_options: state.levelsOf(person) },
    ...{ comment_disabled: person.noComment, duet_disabled: person.noDuet, stitch_disabled: person.noStitch },
    max_video_post_duration_sec: person.maxSeconds,
  });
};

const isBeyondCap = (state: State, { id }: Person): boolean => {
  const day = Math.floor(state.now() / 86_400_000);
  const ofToday = state.posts.filter(({ takenAt }) => takenAt !== null && Math.floor(takenAt / 86_400_000) === day);
  const active = new Set(ofToday.map(({ personId }) => personId));
  return !active.has(id) && active.size >= state.activeCap;
};

/** Who may post this now. */
const mayPost = (state: State, person: Person, info: Info): void => {
  if (person.isBanned) throw refuse('spam_risk_user_banned_from_posting');
  if (!state.isAudited && !(person.isPrivate && info.privacy_level === 'SELF_ONLY')) {
    throw refuse('unaudited_client_can_only_post_to_private_accounts');
  }
  if (!state.levelsOf(person).includes(info.privacy_level)) throw refuse('privacy_level_option_mismatch');
  if (person.postsADay !== null && state.postsOf(person.id) >= person.postsADay)
    throw refuse('spam_risk_too_many_posts');
  if (isBeyondCap(state, person)) throw refuse('reached_active_user_cap');
};

const ofEach = { privacy_level: oneOf(...levels), brand_content_toggle: flag, brand_organic_toggle: flag };
const ofVideo = object(
  {
    post_info: object(ofEach, {
      ...{ title: text(2_200), disable_duet: flag, disable_stitch: flag, disable_comment: flag },
      ...{ video_cover_timestamp_ms: whole, is_aigc: flag },
    }),
    source_info: object({
      source: oneOf('FILE_UPLOAD'),
      video_size: whole,
      chunk_size: whole,
      total_chunk_count: whole,
    }),
  },
  {},
);
const ofPhoto = object({
  ...{ media_type: oneOf('PHOTO'), post_mode: oneOf('DIRECT_POST') },
  post_info: object(ofEach, {
    ...{ title: text(90), description: text(4_000), disable_comment: flag, auto_add_music: flag },
  }),
  source_info: object({ source: oneOf('PULL_FROM_URL'), photo_images: list(1, 35, text()), photo_cover_index: whole }),
});

const [minPart, maxPart, maxLast, maxParts] = [5_000_000, 64_000_000, 128_000_000, 1_000];

/** "Media transfer guide", and what TikTok was seen to refuse since August 2026: parts that are no decimal megabytes. */
const planIsFine = (size: number, chunk: number, count: number): boolean => {
  if (size < 1 || count < 1 || count > maxParts || size > 4_000_000_000) return false;
  if (count === 1) return chunk === size && size <= maxPart;
  const last = size - (count - 1) * chunk;
  return (
    chunk >= minPart &&
    chunk <= maxPart &&
    chunk % 1_000_000 === 0 &&
    count === Math.floor(size / chunk) &&
    last <= maxLast
  );
};

interface VideoBody {
  readonly post_info: Info;
  readonly source_info: {
    readonly video_size: number;
    readonly chunk_size: number;
    readonly total_chunk_count: number;
  };
}

const tagOf = ({ headers }: Request): string | null =>
  typeof headers['x-test-tag'] === 'string' ? headers['x-test-tag'] : null;

export const videoInit = (state: State, request: Request, origin: string): Answer => {
  const person = personOf(state, request, 'video.publish');
  const body = jsonOf(request);
  ofVideo(body, 'body');
  const { post_info: info, source_info: source } = body as VideoBody;
  const { video_size: size, chunk_size: chunk, total_chunk_count: count } = source;
  if (!planIsFine(size, chunk, count)) {
    throw invalid(
      chunk < minPart || chunk > maxPart || count > 1
        ? 'The chunk size is invalid'
        : 'The total chunk count is invalid',
      'invalid_param',
    );
  }
  mayPost(state, person, info);
  const upload: Upload = {
    ...{ id: state.id(), token: state.token('up'), size, chunk, count, until: state.now() + 3_600_000 },
    ...{ received: 0, arrived: 0, parts: 0 },
  };
  const post = state.add(person.id, info, { kind: 'video', photos: [], upload, tag: tagOf(request) });
  const to = `${origin}/video/?upload_id=${upload.id}&upload_token=${upload.token}`;
  return fine({ publish_id: post.publishId, upload_url: to });
};

export const postOfUpload = (state: State, query: URLSearchParams): Post | undefined =>
  state.posts.find(
    ({ upload }) =>
      upload !== null && upload.id === query.get('upload_id') && upload.token === query.get('upload_token'),
  );

/** The server that takes files: it knows no tokens of people. */
export const putPart = (state: State, { headers, query, body }: Request): Answer => {
  const post = postOfUpload(state, query);
  const upload = post?.upload ?? null;
  if (headers.authorization !== undefined) return ofFiles(400);
  if (post === undefined || upload === null) return ofFiles(404);
  if (upload.until <= state.now()) return ofFiles(403);
  const types = ['video/mp4', 'video/quicktime', 'video/webm'];
  const [, first, last, total] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? []).map(Number);
  if (first === undefined || last === undefined || total === undefined) return ofFiles(400);
  if (!types.includes(headers['content-type'] ?? '') || Number(headers['content-length']) !== body.length)
    return ofFiles(400);
  upload.arrived += body.length;
  const range = { 'content-range': `bytes 0-${Math.max(upload.received - 1, 0)}/${upload.size}` };
  if (first !== upload.received || total !== upload.size) return ofFiles(416, range);
  const isLast = upload.parts === upload.count - 1;
  const wanted = isLast ? upload.size - upload.received : upload.chunk;
  if (last - first + 1 !== body.length || body.length !== wanted) return ofFiles(400);
  upload.received += body.length;
  upload.parts += 1;
  if (isLast) post.takenAt = state.now();
  return ofFiles(isLast ? 201 : 206, { 'content-range': `bytes 0-${upload.received - 1}/${upload.size}` });
};

/** A picture as TikTok fetches it: no way leads on from its address, and its host has a name, or this machine's. */
const fetched = async (state: State, address: string): Promise<boolean> => {
  const known = state.web.get(address);
  const isHere = address.startsWith('http://127.0.0.1:');
  const answer = known === undefined && isHere ? await fetch(address, { redirect: 'manual' }).catch(() => null) : null;
  const type = known ?? (answer?.status === 200 ? answer.headers.get('content-type') : null);
  await answer?.body?.cancel();
  return type === 'image/jpeg' || type === 'image/webp';
};

interface PhotoBody {
  readonly post_info: Info;
  readonly source_info: { readonly photo_images: readonly string[]; readonly photo_cover_index: number };
}

export const contentInit = async (state: State, request: Request): Promise<Answer> => {
  const person = personOf(state, request, 'video.publish');
  const body = jsonOf(request);
  ofPhoto(body, 'body');
  const { post_info: info, source_info: source } = body as PhotoBody;
  const { photo_images: photos, photo_cover_index: cover } = source;
  if (cover >= photos.length) throw invalid('photo_cover_index is out of range', 'invalid_param');
  const isProven = (url: string): boolean => state.proven.some((prefix) => url.startsWith(prefix));
  if (!photos.every((url) => /^https:|^http:\/\/127\.0\.0\.1:/.test(url)))
    throw invalid('Only https is supported', 'invalid_param');
  if (!photos.every(isProven)) throw refuse('url_ownership_unverified');
  mayPost(state, person, info);
  const post = state.add(person.id, info, { kind: 'photo', photos, upload: null, tag: tagOf(request) });
  const all = await Promise.all(photos.map((url) => fetched(state, url)));
  if (all.includes(false)) post.failReason = 'photo_pull_failed';
  return fine({ publish_id: post.publishId });
};

/** Ids are bare integers of 64 bits, and of a post that is not public there are none. */
export const statusFetch = (state: State, request: Request): Answer => {
  const person = personOf(state, request, 'video.publish');
  const body = jsonOf(request);
  object({ publish_id: text(64) })(body, 'body');
  const { publish_id: id } = body as { readonly publish_id: string };
  const post = state.posts.find(({ publishId }) => publishId === id);
  if (post === undefined) throw refuse('invalid_publish_id');
  if (post.personId !== person.id) throw refuse('token_not_authorized_for_specified_publish_id');
  const bytes = post.upload === null ? {} : { uploaded_bytes: post.upload.received };
  if (post.takenAt === null) return fine({ status: 'PROCESSING_UPLOAD', ...bytes });
  if (post.takenAt + post.lookMs > state.now()) {
    return fine({ status: post.upload === null ? 'PROCESSING_DOWNLOAD' : 'PROCESSING_UPLOAD', ...bytes });
  }
  if (post.failReason !== null) {
    return fine({ status: 'FAILED', fail_reason: post.failReason, publicaly_available_post_id: [], ...bytes });
  }
  const shown = state.isPublic(post) ? [int64(post.postId)] : [];
  return fine({ status: 'PUBLISH_COMPLETE', publicaly_available_post_id: shown, ...bytes });
};
