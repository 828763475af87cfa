/**
 * What a network told of posts while somebody listened, where it does not answer when it is asked. A place is a channel or
 * a group, a post one of its messages.
 */
import type { Json } from './platform.ts';

/** How much is kept. */
export const heardLimits = {
  /** Posts of one place: the newest. */
  postsPerPlace: 2_000,
  /** Since a post was first heard of. */
  days: 90,
} as const;

/** Digits, as the network gives them. */
export interface HeardPost {
  readonly place: string;
  readonly post: number;
}

export interface HeardReactions extends HeardPost {
  /** Seconds since the epoch, by the network's clock. */
  readonly at: number;
  /** The network's own members. */
  readonly said: Json;
}

/** The post begins a discussion in a group. */
export interface HeardDiscussion extends HeardPost {
  readonly group: string;
  readonly root: number;
}

/** A message in a discussion. */
export interface HeardComment {
  readonly group: string;
  readonly root: number;
  /** Grows within a group. */
  readonly message: number;
}

export interface Heard {
  readonly reactions: readonly HeardReactions[];
  readonly discussions: readonly HeardDiscussion[];
  readonly comments: readonly HeardComment[];
}

/** Null: nothing was heard, which is not zero. */
export interface HeardFigures {
  readonly reactions: Json | null;
  readonly comments: number | null;
}

export interface HeardPosts {
  /**
   * Keeps the newest reactions of each post, and counts comments. Durable when it resolves; a repeat changes nothing.
   * A comment whose discussion was not heard of is left out.
   */
  keep(heard: Heard): Promise<void>;
  /** A post of which nothing was heard is absent. */
  of(place: string, posts: readonly number[]): Promise<ReadonlyMap<number, HeardFigures>>;
  /** Forgets all posts of these places. */
  forget(places: readonly string[]): Promise<void>;
  /** Deletes what was first heard longer ago than it is kept. */
  sweep(): Promise<void>;
}
