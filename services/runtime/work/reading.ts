import { within } from '#contracts/base/pause.ts';

/** Milliseconds for which a reading stands, and after which one is made beside the work that uses the last one. */
const standsMs = 1_000;
const freshMs = 250;
/** While the database does not answer, the last reading is believed for so long, milliseconds. */
const believedMs = 10_000;
/** Milliseconds that the database has to answer. */
const answerMs = 2_000;

/** What an operator set for all processes by rows, as this process knows it: at most a second old while the database answers. */
export class Reading<T> {
  readonly #what: string;
  readonly #read: () => Promise<T>;
  #known: { readonly value: T; readonly at: number } | null = null;
  #reading: Promise<T> | null = null;

  /** @param what for the error: `the holds` */
  constructor(what: string, read: () => Promise<T>) {
    this.#what = what;
    this.#read = read;
  }

  /** @throws where the database has not answered for long */
  async get(): Promise<T> {
    const known = this.#known;
    const age = known === null ? Number.POSITIVE_INFINITY : performance.now() - known.at;
    if (known !== null && age < freshMs) return known.value;
    const reading = this.#again();
    if (known === null || age > believedMs) return reading;
    // A reading that nobody awaits leaves its error to the next one.
    const orKnown = reading.catch(() => known.value);
    return age < standsMs ? known.value : orKnown;
  }

  /** The next reading asks the database. */
  forget(): void {
    this.#known = null;
  }

  #again(): Promise<T> {
    this.#reading ??= (async () => {
      // Before the query: what is set while it runs may be missing.
      const at = performance.now();
      const value = await within(answerMs, this.#read(), () => {
        throw new Error(`${this.#what} could not be read: the database does not answer`);
      });
      this.#known = { value, at };
      return value;
    })().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }
}
