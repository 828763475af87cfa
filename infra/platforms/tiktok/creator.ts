import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { AccountSource, AskedAccount } from '#contracts/ports/platform-account.ts';
import { overrideRules } from '#domain/platforms/index.ts';
import type { NotOk } from '../kit/errors.ts';
import { withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { type Members, membersOf, numberIn } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';
import { posting } from './tables.ts';

/**
 * "Query Creator Info": what an account may post now. TikTok demands that it is asked where a post is shown to its author and
 * right before each post, and that nothing of it is guessed.
 */

export interface Creator {
  readonly kind: 'creator';
  readonly levels: readonly string[];
  readonly noComment: boolean;
  readonly noDuet: boolean;
  readonly noStitch: boolean;
  /** Null: TikTok names none. */
  readonly maxDurationMs: number | null;
}

/** As the app shows them. */
const levelNames: Readonly<Record<string, string>> = {
  PUBLIC_TO_EVERYONE: 'Everyone',
  FOLLOWER_OF_CREATOR: 'Followers',
  MUTUAL_FOLLOW_FRIENDS: 'Friends',
  SELF_ONLY: 'Only you',
};

/** Those that the setting knows: of another one nobody can say what it means. */
const levelsIn = (data: Members | null): readonly string[] => {
  const said = data?.privacy_level_options;
  const rule = overrideRules('tiktok').privacyLevel;
  const known = rule?.type === 'enum' ? rule.values : [];
  return [...new Set(Array.isArray(said) ? said : [])].filter((one) => typeof one === 'string' && known.includes(one));
};

export const askCreator = async (
  { client }: Pick<Bound, 'client'>,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Creator | NotOk> => {
  const answer = await client.call(subject, posting('/post/publish/creator_info/query/'), signal);
  if (answer.kind !== 'ok') return answer;
  const data = membersOf(answer.body.data);
  const seconds = numberIn(data ?? {}, 'max_video_post_duration_sec');
  return {
    ...{ kind: 'creator', levels: levelsIn(data) },
    noComment: data?.comment_disabled === true,
    noDuet: data?.duet_disabled === true,
    noStitch: data?.stitch_disabled === true,
    maxDurationMs: seconds === null ? null : seconds * 1_000,
  };
};

/** Limits of posts, and not of questions: TikTok answers them to this call so that nobody begins a post. */
const stops = ['spam_risk_too_many_posts', 'spam_risk_too_many_pending_share', 'reached_active_user_cap'];
const banned = 'spam_risk_user_banned_from_posting';

const ask = (bound: Bound, { id: accountId }: AskedAccount, signal: AbortSignal) =>
  askCreator(bound, { accountId, targetId: null }, signal);

export const facts =
  (bound: Bound): NonNullable<AccountSource['facts']> =>
  async (_platform, account, signal) => {
    const creator = await ask(bound, account, signal);
    const observedAt = new Date(bound.clock()).toISOString();
    if (creator.kind === 'creator') {
      // Comments, duets and stitches that the account has off are off in the post as well: no value of a setting is wrong.
      const { levels, maxDurationMs } = creator;
      const allows = { privacyLevel: levels };
      return { kind: 'facts', facts: { observedAt, allows, maxDurationMs, canPostNow: true, until: null } };
    }
    const said = creator.kind === 'refused' ? (creator.failure.platformCode ?? '') : '';
    if (creator.kind !== 'refused' || !(said === banned || stops.includes(said))) {
      return withoutFigures(creator, bound.clock());
    }
    const until = said === banned ? null : namedInstant(creator.named);
    return { kind: 'facts', facts: { observedAt, allows: {}, maxDurationMs: null, canPostNow: false, until } };
  };

/** `privacyLevel` is the one key of TikTok. */
export const choices =
  (bound: Bound): AccountSource['choices'] =>
  async (_platform, account, _key, signal) => {
    const creator = await ask(bound, account, signal);
    if (creator.kind !== 'creator') return withoutFigures(creator, bound.clock());
    const all = creator.levels.map((value) => ({ value, label: levelNames[value] ?? value, about: null }));
    return { kind: 'choices', choices: all, isCut: false };
  };
