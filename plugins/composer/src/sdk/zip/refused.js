// Why an archive was not read.

/** Its sender's fault, in a sentence that goes on behind the file's name. */
export class Refused extends Error {}

/** What unpacks to far more than it is. */
export function bomb(ratio) {
  return new Refused(`it unpacks to more than ${ratio} times its size`);
}
