import { readingOf } from '#domain/platforms/index.ts';
import { contentFor, firstCommentOf } from '#domain/post/content.ts';
import { post } from '#domain/post/post.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { LiveAccount, LivePost } from './live-networks.ts';

/**
 * Invariants of live accounts at rest, by what the networks have: each part of a target at most once, a published one
 * exactly as the target says, and nothing that no target wants. Texts are never the same, so a text names its target.
 */

export interface Live {
  readonly workspaceId: string;
  readonly accounts: readonly LiveAccount[];
  /** Before a look at the posts: asks the networks outside of this process. */
  read(): Promise<void>;
  posts(): readonly LivePost[];
}

interface Wanted {
  readonly text: string;
  readonly files: number;
}

/** The parts of a target as its author composed them. */
const partsOf = ({ common }: ScheduledTarget, itsPost: readonly DecodedEvent[]): readonly Wanted[] => {
  const composed = foldEvents(
    post,
    itsPost.filter(({ revision }) => revision <= common.postRevision),
  );
  if (composed.status !== 'live') return [];
  return contentFor(composed.body, common.platform).segments.map(({ content, mediaIds }) => ({
    ...{ text: content, files: mediaIds.length },
  }));
};

const commentOf = ({ common }: ScheduledTarget, itsPost: readonly DecodedEvent[]): string | null => {
  const composed = foldEvents(post, itsPost);
  if (composed.status !== 'live') return null;
  return firstCommentOf(common.platform, contentFor(composed.body, common.platform).overrides);
};

export class LiveCheck {
  readonly #live: Live;
  readonly #made: ReadonlyMap<string, readonly LivePost[]>;
  readonly #claimed = new Set<string>();

  /** By what the networks have now. */
  static async of(live: Live): Promise<LiveCheck> {
    await live.read();
    return new LiveCheck(live);
  }

  private constructor(live: Live) {
    this.#live = live;
    // Two networks may give the same id to accounts of theirs, and one post has one text on both.
    this.#made = Map.groupBy(live.posts(), ({ platform, of, text }) => `${platform} ${of} ${text}`);
  }

  /** The network's posts of that text, which the target claims for its own. */
  #of({ common }: ScheduledTarget, text: string): readonly LivePost[] {
    const account = this.#live.accounts.find(({ id }) => id === common.accountId);
    const key = `${account?.platform} ${account?.externalId} ${text}`;
    this.#claimed.add(key);
    return this.#made.get(key) ?? [];
  }

  /** How many parts the network shows to whoever looks: what it shows nobody can settle nothing. */
  shown(state: ScheduledTarget, itsPost: readonly DecodedEvent[]): number {
    const externalId = this.#live.accounts.find(({ id }) => id === state.common.accountId)?.externalId ?? '';
    if (readingOf(state.common.platform, externalId).readsBack !== 'own_posts') return 0;
    return partsOf(state, itsPost).filter(({ text }) => this.#of(state, text).length > 0).length;
  }

  target(state: ScheduledTarget, itsPost: readonly DecodedEvent[], events: readonly DecodedEvent[]): readonly string[] {
    const wrong: string[] = [];
    const parts = partsOf(state, itsPost);
    const made = parts.map(({ text }) => this.#of(state, text));
    const { publishedSegments } = state.common;
    const isThread = parts.length > 1;
    const said = isThread
      ? publishedSegments.map(({ externalId }) => externalId)
      : state.status === 'published'
        ? [state.externalId]
        : [];
    // The network's answer to the last call is not known; it may be there in part, or whole.
    const isOpen = state.status === 'outcome_unknown';
    for (const [index, all] of made.entries()) {
      const [one, ...others] = all;
      if (others.length > 0) wrong.push(`was created ${all.length} times in part ${index}`);
      if (index >= said.length) {
        const mayBe = isOpen && index === said.length;
        if (one !== undefined && !mayBe)
          wrong.push(`is ${state.status}, and the network has its part ${index} as ${one.externalId}`);
        continue;
      }
      if (one?.externalId !== said[index])
        wrong.push(`has its part ${index} as ${said[index]}, and the network has ${one?.externalId}`);
      if (one === undefined) continue;
      if (one.files !== parts[index]?.files)
        wrong.push(`has ${one.files} files of ${parts[index]?.files} on its network`);
      const parent = index === 0 ? null : said[index - 1];
      if (one.replyTo !== parent) wrong.push(`has its part ${index} in reply to ${one.replyTo}, not ${parent}`);
    }
    if (state.status === 'published' && said.length !== parts.length)
      wrong.push(`is published in ${said.length} parts of ${parts.length}`);
    return [...wrong, ...this.#comment(state, itsPost, events)];
  }

  #comment(
    state: ScheduledTarget,
    itsPost: readonly DecodedEvent[],
    events: readonly DecodedEvent[],
  ): readonly string[] {
    const text = commentOf(state, itsPost);
    if (text === null) return [];
    const [one, ...others] = this.#of(state, text);
    const ends = events.filter(({ type }) => /^TargetFirstComment(Posted|Failed)$/.test(type));
    const [end] = ends;
    const wrong = others.length > 0 ? [`has ${others.length + 1} comments`] : [];
    if (state.status !== 'published') return one === undefined ? wrong : [...wrong, 'is not out, and has a comment'];
    if (end === undefined || ends.length > 1) return [...wrong, `has ${ends.length} outcomes of its comment`];
    if (one !== undefined && one.replyTo !== state.externalId) wrong.push(`has a comment on ${one.replyTo}`);
    if (end.type === 'TargetFirstCommentPosted') {
      if (one?.externalId !== end.data.externalId)
        wrong.push(`has the comment ${end.data.externalId}, and the network has ${one?.externalId}`);
    } else if (one !== undefined && end.data.code !== 'first_comment_unknown')
      wrong.push(`has no comment for ${end.data.code}, and the network has one`);
    return wrong;
  }

  /** To be asked when each target was looked at. */
  strangers(): readonly string[] {
    return [...this.#made]
      .filter(([key]) => !this.#claimed.has(key))
      .map(([key, all]) => `nobody wanted what a network has: ${key} as ${all.map(({ externalId }) => externalId)}`);
  }
}
