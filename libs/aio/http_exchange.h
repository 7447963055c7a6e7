#pragma once

#include <memory>
#include <string>

#include "libs/aio/http_message.h"
#include "libs/aio/http_server.h"

namespace aio {

// One request on a server's connection. Private to libs/aio.
class Exchange final : public HttpExchange {
 public:
  Exchange(std::shared_ptr<Stream> stream, std::shared_ptr<Input> input,
           std::unique_ptr<MessageReader> reader, std::string peer);

  const HttpHead& head() const override { return head_; }
  std::string peer() const override { return peer_; }
  std::weak_ptr<Stream> connection() const override { return stream_; }
  Task<base::Result<std::size_t>> read(char* buffer, std::size_t size) override;
  Task<base::Result<std::string>> read_all(std::size_t bytes_max) override;
  Task<base::Result<base::Done>> reply(HttpReply reply) override;
  Task<base::Result<base::Done>> begin(int status, HttpFields fields) override;
  Task<base::Result<base::Done>> write(std::string bytes) override;
  Task<base::Result<base::Done>> finish() override;
  Task<> wait_for_disconnect() override;
  Task<base::Result<base::Done>> forward(std::shared_ptr<Stream> upstream) override;
  base::Result<TakenConnection> take_connection() override;
  void lose_reply() override { reply_lost_ = true; }
  void abort() override;

  // When the handler has returned: replies in its place if it did not, and tells whether the
  // connection can carry another request.
  Task<bool> conclude();
  // The reply is whole: only reading what the peer still sends keeps it from being lost.
  Task<> linger();

 private:
  enum class Phase { kUnanswered, kStreaming, kAnswered, kBroken };

  std::string head_text(int status, const HttpFields& fields) const;
  Task<base::Result<base::Done>> send(std::string bytes);
  Task<bool> drain();
  Task<base::Result<base::Done>> send_request(Stream& upstream);
  Task<> upload(std::shared_ptr<Stream> upstream);
  Task<> relay(Input& input, base::Result<base::Done>& outcome);
  Task<base::Result<base::Done>> relay_reply(Input& input);
  Task<base::Result<base::Done>> relay_body(MessageReader& reader, Input& input, bool chunked);
  Task<base::Result<base::Done>> tunnel(std::shared_ptr<Stream> upstream, Input& from_upstream);

  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Input> input_;
  std::unique_ptr<MessageReader> reader_;
  std::string peer_;
  HttpHead head_;
  MessageHead request_;
  Phase phase_ = Phase::kUnanswered;
  bool keep_alive_;
  bool continue_expected_;
  bool reply_chunked_ = false;
  bool upload_done_ = false;  // Of forward().
  bool upgraded_ = false;
  bool reply_lost_ = false;
  std::weak_ptr<Stream> upstream_;
};

}  // namespace aio
