/**
 * What a network reported of posts while a process listened, for networks that answer no question about posts. A place is
 * a channel or a group, a post one of its messages.
 */
import type { Json } from './platform.ts';

/** How much is kept. */
export const pushedLimits = {
  /** Posts of one place: the newest. */
  postsPerPlace: 2_000,
  /** Since an update first named a post. */
  days: 90,
} as const;

/** Digits, as the network gives them. */
export interface PushedPost {
  readonly place: string;
  readonly post: number;
}

export interface PushedReactions extends PushedPost {
  /** Seconds since the epoch, by the network's clock. */
  readonly at: number;
  /** The network's own members. */
  readonly said: Json;
}

/** The post begins a discussion in a group. */
export interface PushedDiscussion extends PushedPost {
  readonly group: string;
  readonly root: number;
}

/** A message in a discussion. */
export interface PushedComment {
  readonly group: string;
  readonly root: number;
  /** Grows within a group. */
  readonly message: number;
}

export interface Pushed {
  readonly reactions: readonly PushedReactions[];
  readonly discussions: readonly PushedDiscussion[];
  readonly comments: readonly PushedComment[];
}

/** Null: nothing was pushed, which is not zero. */
export interface PushedFigures {
  readonly reactions: Json | null;
  readonly comments: number | null;
}

export interface PushedPosts {
  /**
   * Keeps the newest reactions of each post, and counts comments. Durable when it resolves; a repeat changes nothing.
   * A comment whose discussion no update named is left out.
   */
  keep(pushed: Pushed): Promise<void>;
  /** A post of which nothing was pushed is absent. */
  of(place: string, posts: readonly number[]): Promise<ReadonlyMap<number, PushedFigures>>;
  /** Forgets all posts of these places. */
  forget(places: readonly string[]): Promise<void>;
  /** Deletes what an update first named longer ago than it is kept. */
  sweep(): Promise<void>;
}
