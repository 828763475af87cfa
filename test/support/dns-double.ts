/** A name server on loopback (UDP) with answers from the test, which may change at any time. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export type RecordType = 'A' | 'AAAA';

/** The answer to a question: addresses (none = no such record), no such name, or silence. */
export type DnsAnswer = readonly string[] | 'no such name' | 'silence';

export interface DnsDouble {
  /** For `Resolver.setServers`. */
  readonly server: string;
  /** Every question so far, as `A hooks.example.com`. */
  readonly questions: readonly string[];
  /** From now on. `nth` counts the questions for this type and name, from 0. */
  answer(answers: (name: string, type: RecordType, nth: number) => DnsAnswer): void;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, RecordType>> = { 1: 'A', 28: 'AAAA' };

export const dnsDouble = async (): Promise<DnsDouble> => {
  const questions: string[] = [];
  let answers: (name: string, type: RecordType, nth: number) => DnsAnswer = () => 'no such name';
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = question(query);
    const asked = `${type} ${name}`;
    const nth = questions.filter((one) => one === asked).length;
    questions.push(asked);
    const answer = type === null ? [] : answers(name, type, nth);
    if (answer !== 'silence') socket.send(response(query.subarray(0, end), answer), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions,
    answer: (next) => {
      answers = next;
    },
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
};

/** The single question of a query (RFC 1035 4.1): its name, its type, and its end. */
const question = (query: Buffer): { readonly name: string; readonly type: RecordType | null; readonly end: number } => {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  // NOTE: each query randomises the case of letters, against forged answers; answers repeat it, tests do not.
  return { name: labels.join('.').toLowerCase(), type: TYPES[query.readUInt16BE(at + 1)] ?? null, end: at + 5 };
};

/** Copies header and question, then appends the records, each with a time to live of 0. */
const response = (asked: Buffer, answer: readonly string[] | 'no such name'): Buffer => {
  const records = answer === 'no such name' ? [] : answer.map(record);
  const head = Buffer.from(asked);
  head.writeUInt16BE(answer === 'no such name' ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, ...records]);
};

const record = (address: string): Buffer => {
  const data = address.includes(':') ? ipv6(address) : Buffer.from(address.split('.').map(Number));
  const fixed = Buffer.alloc(12);
  fixed.writeUInt16BE(0xc00c, 0);
  fixed.writeUInt16BE(data.length === 4 ? 1 : 28, 2);
  fixed.writeUInt16BE(1, 4);
  fixed.writeUInt16BE(data.length, 10);
  return Buffer.concat([fixed, data]);
};

const ipv6 = (address: string): Buffer => {
  const [head = '', tail = ''] = address.split('::').map((part) => part.split(':').filter(Boolean).map(hex).join(''));
  return Buffer.from(head + '0'.repeat(32 - head.length - tail.length) + tail, 'hex');
};
const hex = (group: string): string => group.padStart(4, '0');
