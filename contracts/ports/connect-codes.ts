/**
 * One-time codes that a guest posts where only they may post. A code is no secret once it is posted: it opens nothing by
 * itself, and the page that showed it is the only one that asks for the places in which it was posted.
 */

/** What one code may cost, and one workspace. */
export const codeLimits = {
  lifeMs: 15 * 60_000,
  /** Places that a code remembers. */
  places: 20,
  /** Times that the network is asked about who posted a code. */
  tries: 40,
  /** Codes of a workspace that are open at a time. */
  openPerWorkspace: 100,
} as const;

export interface ConnectCodes {
  /** Keeps a new code; durable when it resolves. False: the workspace has too many open ones. */
  mint(code: string, workspaceId: string): Promise<boolean>;
  /** Those of the codes that are open. Strangers may post any number of others. */
  open(codes: readonly string[]): Promise<ReadonlySet<string>>;
  /** Uses up one of the tries of a code. False: it has none left, or is not open. */
  take(code: string): Promise<boolean>;
  /**
   * Somebody who may speak for the place posted the code there. Durable when it resolves; a repeat does no harm. A code
   * that is not open, or has its number of places, remembers no more.
   */
  spoke(code: string, place: string): Promise<void>;
  /** In the order in which they spoke. Null: the code is not open. */
  placesOf(code: string): Promise<readonly string[] | null>;
  /** The code is open no more. A repeat does no harm. */
  forget(code: string): Promise<void>;
  /** Deletes the codes that ran out. */
  sweep(): Promise<void>;
}
