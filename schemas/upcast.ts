type Data = Record<string, unknown>;

/** A pure function from the data of version n of an event to that of version n + 1. */
export interface Upcast {
  (data: Data): Data;
  /**
   * Whether data of version n + 1 say what version n cannot say. Absent: all do. Other data are written as version n, so
   * that an older build stops only at what it does not know.
   */
  readonly needed?: (data: Data) => boolean;
}

/** A version that only allows values which older builds do not know. */
export const grown = (needed: (data: Data) => boolean): Upcast => Object.assign((data: Data) => data, { needed });

/** A version with a further member that may be null; `null` means what its absence meant. */
export const withMember = (member: string): Upcast =>
  Object.assign((data: Data) => ({ ...data, [member]: null }), {
    needed: (data: Data) => data[member] !== null && data[member] !== undefined,
  });
