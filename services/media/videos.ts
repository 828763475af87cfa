/**
 * Renders of videos that this process has under way. They take minutes or hours, everything else seconds. No workspace
 * has the last slot, and one more is kept for what is no video, so that one workspace's videos do not hold up its own
 * pictures either: that takes three slots. With two, a workspace waits for its own video and no other does.
 */

/** No slot is free for a video now: it is put off, and no fault of anybody. */
export class NoRoom extends Error {
  constructor() {
    super('other videos are being rendered');
    this.name = 'NoRoom';
  }
}

export class Videos {
  readonly #most: number;
  #busy = 0;

  /** @param slots files that the process works on at once */
  constructor(slots: number) {
    this.#most = Math.max(1, slots - 2);
  }

  get hasRoom(): boolean {
    return this.#busy < this.#most;
  }

  /** @throws NoRoom */
  enter(): void {
    if (!this.hasRoom) throw new NoRoom();
    this.#busy += 1;
  }

  leave(): void {
    this.#busy -= 1;
  }
}
